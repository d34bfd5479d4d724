// A systemd unit, hardened as far as V8's compiler and GPUs allow.
import { isWithin, type Setup, serveHere, stopSeconds } from "./setup.ts";

export function systemdUnit(setup: Setup): string {
  const { port } = setup;
  return `# Save as /etc/systemd/system/model-gateway.service, then:
#   systemctl daemon-reload && systemctl enable --now model-gateway
[Unit]
Description=Model Gateway
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
# systemd-notify sends it, as Node has no such sockets.
NotifyAccess=all
ExecStart=${serveHere(setup).map(commandWord).join(" ")}
TimeoutStartSec=180
Restart=on-failure
RestartSec=5
# Responses in flight end before their engines do.
KillMode=mixed
TimeoutStopSec=${stopSeconds(setup)}
${[...environment(setup), ...credentials(setup), ...account(setup), ...files(setup)].join("\n")}

NoNewPrivileges=yes
CapabilityBoundingSet=${port < 1024 ? "CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE" : ""}
ProtectSystem=strict
PrivateTmp=yes
PrivateMounts=yes
ProtectProc=invisible
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0077
# Two for each chat.
LimitNOFILE=65536
# GPUs, and nothing else of /dev. Not MemoryDenyWriteExecute: V8 compiles.
DevicePolicy=closed
${["char-drm", "char-nvidia*", "char-kfd"].map((device) => `DeviceAllow=${device} rw`).join("\n")}

[Install]
WantedBy=multi-user.target
`;
}

function environment({ cacheDir, variables, licenseKeyFile, hubTokenFile }: Setup): string[] {
  return [
    ...Object.entries({ HF_HUB_CACHE: cacheDir, ...variables }).map(
      ([name, value]) => `Environment=${word(`${name}=${value}`)}`,
    ),
    // %d: where systemd puts credentials.
    ...(licenseKeyFile === null ? [] : ["Environment=GATEWAY_LICENSE_KEY_FILE=%d/license-key"]),
    ...(hubTokenFile === null ? [] : ["Environment=GATEWAY_HUB_TOKEN_FILE=%d/hub-token"]),
  ];
}

function credentials({ licenseKeyFile, hubTokenFile }: Setup): string[] {
  const load = (name: string, path: string | null): string[] =>
    path === null ? [] : [`LoadCredential=${name}:${path.replaceAll("%", "%%")}`];
  return [...load("license-key", licenseKeyFile), ...load("hub-token", hubTokenFile)];
}

function account({ account, gpuGroups }: Setup): string[] {
  if (account !== null) return [`User=${account.name}`];
  return ["DynamicUser=yes", ...(gpuGroups.length > 0 ? [`SupplementaryGroups=${gpuGroups.join(" ")}`] : [])];
}

/** Where it writes. */
function files({ account, stateDir, cacheDir, configPath, writesBack }: Setup): string[] {
  if (account === null) return [`StateDirectory=${stateDir.replace(/^\/var\/lib\//, "")}`, "ProtectHome=yes"];
  const folders = [stateDir, cacheDir, ...(writesBack ? [configPath.replace(/\/[^/]*$/, "")] : [])];
  const outer = folders.filter((path) => !folders.some((other) => other !== path && isWithin(other, path)));
  return ["ProtectHome=read-only", ...new Set(outer.map((path) => `ReadWritePaths=${word(path)}`))];
}

/** systemd replaces $NAME in a command. */
function commandWord(text: string): string {
  return word(text).replaceAll("$", "$$$$");
}

function word(text: string): string {
  const escaped = text.replaceAll("%", "%%");
  return /^[\w@%+=:,./*-]+$/.test(text) ? escaped : `"${escaped.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
