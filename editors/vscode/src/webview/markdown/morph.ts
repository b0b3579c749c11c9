/**
 * Makes the children of `place` those of `wanted`, changing as little as can be: so a selection, a scrolled table and
 * the focus outlive the next word.
 */
export function morph(place: Node, wanted: Node): void {
  let old = place.firstChild;
  let next = wanted.firstChild;
  while (next) {
    const after = next.nextSibling;
    if (!old) place.appendChild(next);
    else {
      const following: ChildNode | null = old.nextSibling;
      if (isSame(old, next)) become(old, next);
      else place.replaceChild(next, old);
      old = following;
    }
    next = after;
  }
  while (old) {
    const following: ChildNode | null = old.nextSibling;
    old.remove();
    old = following;
  }
}

function isSame(a: Node, b: Node): boolean {
  return a.nodeName === b.nodeName;
}

function become(old: Node, wanted: Node): void {
  if (old instanceof Text && wanted instanceof Text) {
    if (old.data === wanted.data) return;
    if (wanted.data.startsWith(old.data)) old.appendData(wanted.data.slice(old.data.length));
    else old.data = wanted.data;
    return;
  }
  if (old instanceof Element && wanted instanceof Element) attributes(old, wanted);
  morph(old, wanted);
}

function attributes(old: Element, wanted: Element): void {
  for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of [...wanted.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}
