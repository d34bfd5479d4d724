// A launchd agent of this user: it starts at the login, and again if it fails.
import { type Setup, serveHere, stopSeconds } from "./setup.ts";

export function launchdAgent(setup: Setup): string {
  const { cacheDir, variables, licenseKeyFile, hubTokenFile, stateDir } = setup;
  const environment = {
    HF_HUB_CACHE: cacheDir,
    ...variables,
    ...(licenseKeyFile !== null && { GATEWAY_LICENSE_KEY_FILE: licenseKeyFile }),
    ...(hubTokenFile !== null && { GATEWAY_HUB_TOKEN_FILE: hubTokenFile }),
    // launchd's own has no Homebrew, where engines are.
    PATH: "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
  };
  const log = `${stateDir}/model-gateway.log`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Save as ~/Library/LaunchAgents/model-gateway.plist, then:
     launchctl bootstrap gui/$UID ~/Library/LaunchAgents/model-gateway.plist -->
<plist version="1.0">
<dict>
  <key>Label</key><string>model-gateway</string>
  <key>ProgramArguments</key>
  <array>
${serveHere(setup)
  .map((text) => `    ${string(text)}`)
  .join("\n")}
  </array>
  <key>EnvironmentVariables</key>
  <dict>
${Object.entries(environment)
  .map(([name, value]) => `    <key>${name}</key>${string(value)}`)
  .join("\n")}
  </dict>
  <key>WorkingDirectory</key>${string(stateDir)}
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>ExitTimeOut</key><integer>${stopSeconds(setup)}</integer>
  <key>Umask</key><integer>${0o077}</integer>
  <key>StandardOutPath</key>${string(log)}
  <key>StandardErrorPath</key>${string(log)}
</dict>
</plist>
`;
}

function string(text: string): string {
  return `<string>${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</string>`;
}
