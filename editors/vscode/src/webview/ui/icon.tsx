/** One of VS Code's own icons; it only goes beside words or in what has a label. */
export function Icon({ name, class: more = "" }: { name: string; class?: string }) {
  return <span class={`codicon codicon-${name} ${more}`} aria-hidden="true" />;
}
