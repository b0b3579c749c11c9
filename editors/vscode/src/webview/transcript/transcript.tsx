export function Transcript() {
  return <div role="log" aria-label="Conversation" />;
}
