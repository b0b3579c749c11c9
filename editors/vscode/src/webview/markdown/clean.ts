/** The one place where HTML of others becomes part of the page: nothing that runs, loads or styles gets through. */
import DOMPurify from "dompurify";

const CONFIG = {
  ALLOWED_TAGS: [
    "a", "b", "blockquote", "br", "button", "code", "del", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "li",
    "ol", "p", "pre", "s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["aria-label", "class", "data-act", "data-align", "href", "start", "tabindex", "title", "type"],
  ALLOW_DATA_ATTR: false,
  // Links are opened by the host; here they are only kept from being scripts. `a.ts:3` is a file and no scheme.
  ALLOWED_URI_REGEXP: /^(?:https?|mailto|file):|^[^a-z]|^[a-z+.-]+(?:[^a-z+.\-:]|$)|^[\w-]+(?:\.[\w-]+)+:\d/i,
  RETURN_DOM_FRAGMENT: true as const,
};

export function clean(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, CONFIG);
}
