import { useStore } from "../model/store";
import { Select } from "../ui/select";

/** In which of several folders the next session begins. */
export function FolderPicker() {
  const store = useStore();
  const around = store.surroundings.value;
  if (!around) return null;
  const { folders, folder } = around;
  const name = folders.find((one) => one.uri === folder)?.name ?? "No folder";
  return (
    <Select
      class="folder" label="Folder" text={name} icon="folder" title={`New sessions begin in ${name}`} value={folder} align="end"
      options={folders.map(({ uri, name: label }) => ({ id: uri, label, detail: uri.replace(/^file:\/\//, ""), icon: "folder" }))}
      onPick={(chosen) => void store.attempt("choose", { folder: chosen })}
    />
  );
}
