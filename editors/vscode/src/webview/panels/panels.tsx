export function Panels() {
  return null;
}
