export { Icon, IconButton } from "../ui/icon";
