/** An icon of VS Code's own set; it says nothing to those who do not see it. */
export function Icon({ name, spin, class: more }: { name: string; spin?: boolean; class?: string }) {
  return <span class={`codicon codicon-${name}${spin ? " codicon-modifier-spin" : ""}${more ? ` ${more}` : ""}`} aria-hidden="true" />;
}

export function IconButton({ name, label, onClick, pressed }: {
  name: string; label: string; onClick: (event: MouseEvent) => void; pressed?: boolean;
}) {
  return (
    <button type="button" class={`icon-button codicon codicon-${name}`} title={label} aria-label={label} onClick={onClick}
      {...(pressed === undefined ? {} : { "aria-pressed": pressed })} />
  );
}
