// Reports the gateway's state to systemd, where a unit of Type=notify has started it. Node has no datagram sockets of the Unix kind:
// systemd's own program sends the messages.
import { GatewayError } from "../../core/errors.ts";
import { createSerial } from "../../core/serial.ts";
import { exitText, startProcess } from "./managed-process.ts";

/** Takes assignments of sd_notify(3), such as `READY=1`, and a line for `systemctl status`. */
export type ServiceManager = (status: string, ...assignments: readonly string[]) => void;

/** Does nothing where no service manager waits for messages. `onError`: one could not be sent. */
export function serviceManager(
  { NOTIFY_SOCKET: socket, PATH: path }: Readonly<Record<string, string | undefined>>,
  onError: (error: unknown) => void,
): ServiceManager {
  if (!socket) return () => undefined;
  const environment = { NOTIFY_SOCKET: socket, ...(path && { PATH: path }) };
  const inOrder = createSerial();
  return (status, ...assignments) => {
    const args = [...assignments, `STATUS=${status.replaceAll(/\s+/g, " ")}`];
    inOrder(() => send(args, environment)).catch(onError);
  };
}

async function send(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<void> {
  const sender = await startProcess({ path: "systemd-notify", args, environment, workingDir: "/" });
  const exit = await sender.exited;
  if (exit.code !== 0)
    throw new GatewayError("internal", `systemd-notify failed: ${exitText(exit)}: ${sender.lastWords()}`);
}
