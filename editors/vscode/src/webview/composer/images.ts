/**
 * Images that go along with a prompt. What one is is told by its bytes, as the daemon does, whatever its name or
 * the clipboard says.
 */
import type { Attachment } from "../../shared/messages";
import type { ImageContent } from "../../shared/wire";

/** What the daemon takes: `agentd/protocol/README.md`, Images. */
export const MAX_IMAGE_BYTES = 20 * 1024 * 1024;

const KINDS: [mimeType: string, match: (bytes: Uint8Array) => boolean][] = [
  ["image/png", (bytes) => starts(bytes, 0, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)],
  ["image/jpeg", (bytes) => starts(bytes, 0, 0xff, 0xd8, 0xff)],
  ["image/gif", (bytes) => starts(bytes, 0, 0x47, 0x49, 0x46, 0x38)],
  ["image/webp", (bytes) => starts(bytes, 0, 0x52, 0x49, 0x46, 0x46) && starts(bytes, 8, 0x57, 0x45, 0x42, 0x50)],
];

function starts(bytes: Uint8Array, at: number, ...expected: number[]): boolean {
  return expected.every((byte, index) => bytes[at + index] === byte);
}

/** The type of an image by its first bytes; null where it is none of those that can be sent. */
export function imageType(bytes: Uint8Array): string | null {
  return KINDS.find(([, match]) => match(bytes))?.[0] ?? null;
}

/** Why a file is not attached, in words for the user. */
export class NoImage extends Error {}

/** The file as an attachment, or NoImage. */
export async function readImage(file: File): Promise<Attachment> {
  const name = file.name || "The image";
  if (file.size > MAX_IMAGE_BYTES) {
    throw new NoImage(`${name} is ${megabytes(file.size)} MB; an image may have at most ${MAX_IMAGE_BYTES / 2 ** 20} MB.`);
  }
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (bytes.length === 0) throw new NoImage(`${name} is empty.`);
  const mimeType = imageType(bytes);
  if (!mimeType) throw new NoImage(`${name} is no PNG, JPEG, GIF or WebP image.`);
  const block: ImageContent = { type: "image", mimeType, data: base64(bytes) };
  return { label: file.name || `Pasted ${mimeType.slice(6).toUpperCase()}`, block };
}

function megabytes(bytes: number): string {
  // Rounded up, so that what is too large never reads as just the limit.
  return (Math.ceil((bytes / 2 ** 20) * 10) / 10).toFixed(1);
}

export function base64(bytes: Uint8Array): string {
  let text = "";
  // Pieces: one call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** For an `img`: the page's policy allows `data:` and nothing else. */
export function imageSource(image: ImageContent): string {
  return `data:${image.mimeType};base64,${image.data}`;
}
