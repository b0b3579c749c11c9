import { useRef } from "preact/hooks";
import { Icon } from "../ui/icon";
import { MenuButton } from "../ui/menu";
import type { Collector } from "./collect";
import { useBox } from "./context";
import { insertWord } from "./trigger";

/** What can go along with a prompt, for those who do not know `@` and `/` yet. */
export function AttachMenu({ collector }: { collector: Collector }) {
  const box = useBox();
  const picker = useRef<HTMLInputElement>(null);
  const mention = () => {
    const { text, caret } = insertWord(box.draft.peek().text, box.draft.peek().text.length, box.draft.peek().text.length, "@");
    box.edit((draft) => ({ ...draft, text }), caret);
  };
  return (
    <>
      <MenuButton class="icon-button" label="Attach" title="Attach files, images and more" items={[
        { label: "File or folder", icon: "file", key: "@", detail: "Or drop some; from the explorer hold Shift", run: mention },
        { label: "Image", icon: "file-media", detail: "Or paste or drop one", run: () => picker.current?.click() },
        { label: "Selection", icon: "list-selection", run: () => void collector.fromEditor("selection") },
        { label: "Problems", icon: "warning", run: () => void collector.fromEditor("diagnostics") },
        { label: "Command", icon: "terminal", key: "/", disabled: box.draft.value.text.trim() !== "", run: () => box.edit((draft) => ({ ...draft, text: "/" }), 1) },
      ]}>
        <Icon name="add" />
      </MenuButton>
      <input
        ref={picker} type="file" hidden multiple accept="image/png,image/jpeg,image/gif,image/webp" aria-label="Image files"
        onChange={(event) => {
          const files = [...event.currentTarget.files ?? []];
          // The same file can be chosen again.
          event.currentTarget.value = "";
          void collector.chosen(files);
        }}
      />
    </>
  );
}
