/** One list, newest first, of the sessions of several folders. */
import type { Session, SessionListResult } from "../shared/wire";

const PAGE = 50;
/** A search reads so many pages of a folder at most before it shows what it has found. */
const PAGES_READ = 20;

export type ReadPage = (workspaceUri: string, cursor: string | undefined, limit: number) => Promise<SessionListResult>;

/** Where a folder's list goes on: the cursor of a page, and how many of that page were told; null at its end. */
type Place = { cursor?: string; skip: number } | null;

/** The list of one folder, read page by page. */
class FolderList {
  private waiting: Session[] = [];
  private cursor: string | undefined;
  private next: string | undefined;
  private told = 0;
  private pages = 0;
  private isRead = false;

  constructor(private readonly read: ReadPage, private readonly folder: string, private readonly from: Place | undefined) {
    this.next = from?.cursor;
  }

  /** The newest session that was not told. Undefined: there is none, or too many were read for one list. */
  async first(): Promise<Session | undefined> {
    while (this.waiting.length === 0 && !this.isOver && this.pages < PAGES_READ) await this.readOn();
    return this.waiting[0];
  }

  take(): void {
    this.waiting.shift();
    this.told++;
  }

  get place(): Place {
    if (this.from === null) return null;
    const [cursor, skip] = this.waiting.length > 0 || !this.isRead ? [this.cursor, this.told] : [this.next, 0];
    if (this.isRead && this.waiting.length === 0 && this.next === undefined) return null;
    return cursor === undefined ? { skip } : { cursor, skip };
  }

  private get isOver(): boolean {
    return this.from === null || (this.isRead && this.next === undefined);
  }

  private async readOn(): Promise<void> {
    const { sessions, nextCursor } = await this.read(this.folder, this.next, PAGE);
    const skip = this.isRead ? 0 : (this.from?.skip ?? 0);
    this.cursor = this.next;
    this.next = nextCursor;
    this.told = skip;
    this.waiting = sessions.slice(skip);
    this.isRead = true;
    this.pages++;
  }
}

/** Up to fifty sessions whose titles hold all words of `query`, and where the list goes on. */
export async function listSessions(
  read: ReadPage, folders: string[], asked: { cursor?: string | undefined; query?: string | undefined },
): Promise<{ sessions: Session[]; nextCursor?: string }> {
  const words = (asked.query ?? "").toLocaleLowerCase().split(/\s+/).filter((word) => word !== "");
  const places = placesOf(asked.cursor);
  const lists = folders.map((folder) => new FolderList(read, folder, places[folder]));
  const found: Session[] = [];
  while (found.length < PAGE) {
    const firsts = await Promise.all(lists.map((list) => list.first()));
    let newest = -1;
    firsts.forEach((session, index) => {
      const best = firsts[newest];
      if (session !== undefined && (best === undefined || session.updatedAt > best.updatedAt)) newest = index;
    });
    const session = firsts[newest];
    if (session === undefined) break;
    lists[newest]?.take();
    const title = session.title.toLocaleLowerCase();
    if (words.every((word) => title.includes(word))) found.push(session);
  }
  const ends = Object.fromEntries(folders.map((folder, index) => [folder, lists[index]?.place ?? null]));
  const hasMore = Object.values(ends).some((place) => place !== null);
  return { sessions: found, ...(hasMore ? { nextCursor: JSON.stringify(ends) } : {}) };
}

function placesOf(cursor: string | undefined): Record<string, Place> {
  if (cursor === undefined) return {};
  try {
    return JSON.parse(cursor) as Record<string, Place>;
  } catch {
    return {}; // from its beginning
  }
}
