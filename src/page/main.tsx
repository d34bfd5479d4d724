// The status page: starts in the browser, uses the gateway's public API alone.
import { render } from "preact";
import { App } from "./app.tsx";

render(<App />, document.body);
