/** A component that is drawn anew only when one of its properties is another object. */
import { Component, type ComponentChildren, type FunctionComponent } from "preact";

export function memo<P extends object>(inner: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const now = this.props as Record<string, unknown>;
      const then = next as Record<string, unknown>;
      for (const name in then) if (now[name] !== then[name]) return true;
      for (const name in now) if (!(name in then)) return true;
      return false;
    }
    override render(): ComponentChildren {
      const Inner = inner;
      return <Inner {...(this.props as P)} />;
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
