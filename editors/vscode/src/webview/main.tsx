/** Where the chat view begins: one store, told by the host, and the page that shows it. */
import { render } from "preact";
import { App } from "./app";
import { connect } from "./host";
import { createStore, StoreContext } from "./model/store";

const store = createStore(connect());
render(
  <StoreContext.Provider value={store}>
    <App />
  </StoreContext.Provider>,
  document.getElementById("app")!,
);
void store.begin();
