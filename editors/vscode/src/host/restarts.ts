/** How soon a daemon that ended by itself is started again, and when it is given up. */

const FIRST_MS = 250;
const LONGEST_MS = 8_000;
/** So many restarts in the window, then no more until the user says so. */
const MOST = 4;
const WINDOW_MS = 180_000;

export class Restarts {
  private at: number[] = [];

  /** Milliseconds to wait before the next start, or null: it is given up. `now` in milliseconds. */
  next(now: number): number | null {
    this.at = this.at.filter((each) => now - each < WINDOW_MS);
    if (this.at.length >= MOST) return null;
    const delay = Math.min(FIRST_MS * 4 ** this.at.length, LONGEST_MS);
    this.at.push(now);
    return delay;
  }

  /** The user wants it started: what was before does not count. */
  forget(): void {
    this.at = [];
  }
}
