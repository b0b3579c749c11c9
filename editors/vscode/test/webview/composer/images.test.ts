import { describe, expect, it } from "vitest";
import { base64, imageType, MAX_IMAGE_BYTES, NoImage, readImage } from "../../../src/webview/composer/images";

const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0];
const file = (bytes: number[] | Uint8Array, name = "shot.png", type = "image/png") => new File([new Uint8Array(bytes)], name, { type });

describe("an image", () => {
  it("is told by its bytes, whatever its name says", async () => {
    expect(imageType(new Uint8Array(PNG))).toBe("image/png");
    expect(imageType(new Uint8Array([0xff, 0xd8, 0xff, 0xe0]))).toBe("image/jpeg");
    expect(imageType(new TextEncoder().encode("GIF89a"))).toBe("image/gif");
    expect(imageType(new TextEncoder().encode("RIFFxxxxWEBPVP8 "))).toBe("image/webp");
    expect(imageType(new TextEncoder().encode("RIFFxxxxWAVEfmt "))).toBeNull();
    const attached = await readImage(file(PNG, "photo.jpg", "image/jpeg"));
    expect(attached).toEqual({ label: "photo.jpg", block: { type: "image", mimeType: "image/png", data: base64(new Uint8Array(PNG)) } });
  });

  it("is refused with its name and the reason where it is none, empty or too large", async () => {
    await expect(readImage(file([1, 2, 3], "notes.png"))).rejects.toThrow("notes.png is no PNG, JPEG, GIF or WebP image.");
    await expect(readImage(file([], "e.png"))).rejects.toThrow("e.png is empty.");
    const large = new File([new Uint8Array(MAX_IMAGE_BYTES + 1)], "big.png");
    await expect(readImage(large)).rejects.toThrow("big.png is 20.1 MB; an image may have at most 20 MB.");
    await expect(readImage(large)).rejects.toBeInstanceOf(NoImage);
  });

  it("is encoded whole, however large", () => {
    const bytes = Uint8Array.from({ length: 100_001 }, (_, index) => index % 251);
    expect(base64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
  });

  it("that was pasted without a name is called by what it is", async () => {
    expect((await readImage(file(PNG, ""))).label).toBe("Pasted PNG");
  });
});
