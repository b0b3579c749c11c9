import { useStore } from "../model/store";
import { Icon } from "../ui/icon";

/** What the last failed call said, until the user has seen it. */
export function FailureNote() {
  const { failure } = useStore();
  const told = failure.value;
  return (
    <div role="alert">
      {told && (
        <div class="callout is-error failure">
          <Icon name="error" />
          <div class="callout-text grow">
            {told.message}
            {told.hint && <div class="muted">{told.hint}</div>}
          </div>
          <button type="button" class="icon-button tiny" aria-label="Dismiss" onClick={() => {
            failure.value = null;
          }}><Icon name="close" /></button>
        </div>
      )}
    </div>
  );
}
