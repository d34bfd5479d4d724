// Who may talk to a gateway on loopback: a page of another site must not, neither directly nor by DNS rebinding. Pure.

const loopbackNames = ["localhost", "127.0.0.1", "[::1]"];

/** The Host header names this machine. A page that had its own name point here would send its name. */
export function isAllowedHost(host: string | undefined, further: readonly string[]): boolean {
  if (host === undefined) return false;
  const name = host.toLowerCase().replace(/:\d+$/, "");
  return (
    loopbackNames.includes(name) ||
    /^127\.\d+\.\d+\.\d+$/.test(name) ||
    name.endsWith(".localhost") ||
    further.includes(name) ||
    further.includes(host.toLowerCase())
  );
}

/** Browsers name the page's origin; other clients send none. */
export function isAllowedOrigin(origin: string | undefined, further: readonly string[]): boolean {
  if (origin === undefined) return true;
  try {
    const { protocol, host } = new URL(origin);
    // Editor extensions and desktop shells: not reachable for a web site.
    if (["vscode-webview:", "vscode-file:", "app:", "tauri:", "file:"].includes(protocol)) return true;
    return isAllowedHost(host, further);
  } catch {
    return false;
  }
}

/** Addresses on which nobody but this machine can connect. */
export function isLoopback(address: string): boolean {
  return address === "localhost" || address === "::1" || address === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(address);
}
