// Manifests for Kubernetes: a StatefulSet with its volume, the document as a ConfigMap, a Service.
import { image, inImage, serveInContainer } from "./container.ts";
import { type Setup, stopSeconds } from "./setup.ts";

const secretsDir = "/etc/model-gateway-secrets";

/** `document`: the text of gateway.yaml. */
export function kubernetesManifests(given: Setup, document: string): string {
  // A pod that was told to stop gets requests until its Service has noticed.
  const setup =
    given.stopDelayMs > 0 ? given : { ...given, stopDelayMs: 5_000, flags: [...given.flags, "--stop-delay=5"] };
  const { port, variables } = setup;
  const labels = "{ app.kubernetes.io/name: model-gateway }";
  // The ConfigMap is the only writer.
  const flags = setup.flags.filter((flag) => !/^--write(?:s|-back)=/.test(flag));
  const command = [
    ...serveInContainer({ ...setup, flags, licenseKeyFile: secretsDir }, secretsDir),
    `--config=${inImage.configDir}/gateway.yaml`,
    "--writes=file",
  ];
  return `# kubectl apply -f FILE, with the image ${image(setup)} where the cluster finds it, after:
#   ${createSecret(setup)}
apiVersion: v1
kind: ConfigMap
metadata: { name: model-gateway, labels: ${labels} }
data:
  gateway.yaml: ${block(document)}
---
apiVersion: v1
kind: Service
metadata: { name: model-gateway, labels: ${labels} }
spec:
  selector: ${labels}
  ports: [{ name: http, port: ${port}, targetPort: http }]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: model-gateway, labels: ${labels} }
spec:
  # The state folder belongs to one gateway at a time.
  replicas: 1
  serviceName: model-gateway
  selector: { matchLabels: ${labels} }
  template:
    metadata: { labels: ${labels} }
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: ${stopSeconds(setup)}
      securityContext:
        runAsNonRoot: true
        runAsUser: ${inImage.uid}
        runAsGroup: ${inImage.uid}
        fsGroup: ${inImage.uid}
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: { type: RuntimeDefault }
      containers:
        - name: model-gateway
          image: ${image(setup)}
          args:${list(command)}
${env(variables)}          ports: [{ name: http, containerPort: ${port} }]
          startupProbe: { httpGet: { path: /livez, port: http }, failureThreshold: 60, periodSeconds: 2 }
          livenessProbe: { httpGet: { path: /livez, port: http }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 }
          readinessProbe: { httpGet: { path: /readyz, port: http }, periodSeconds: 5, timeoutSeconds: 5 }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
          volumeMounts:
            # Folders, not files: kubelet never updates a subPath.
            - { name: document, mountPath: ${inImage.configDir}, readOnly: true }
            - { name: secrets, mountPath: ${secretsDir}, readOnly: true }
            - { name: state, mountPath: ${inImage.stateDir} }
            - { name: tmp, mountPath: /tmp }
      volumes:
        - { name: document, configMap: { name: model-gateway } }
        # 0440, which YAML 1.1 and 1.2 read differently.
        - { name: secrets, secret: { secretName: model-gateway, defaultMode: 288 } }
        - { name: tmp, emptyDir: {} }
  volumeClaimTemplates:
    - metadata: { name: state }
      spec:
        accessModes: [ReadWriteOnce]
        resources: { requests: { storage: 100Gi } }
`;
}

function createSecret({ licenseKeyFile, hubTokenFile }: Setup): string {
  const token = hubTokenFile === null ? "" : ` --from-file=hub-token=${JSON.stringify(hubTokenFile)}`;
  const key = licenseKeyFile === null ? "LICENSE-KEY-FILE" : JSON.stringify(licenseKeyFile);
  return `kubectl create secret generic model-gateway --from-file=license-key=${key}${token}`;
}

function env(variables: Setup["variables"]): string {
  const entries = Object.entries(variables).map(
    ([name, value]) => `            - { name: ${name}, value: ${quoted(value)} }\n`,
  );
  return entries.length === 0 ? "" : `          env:\n${entries.join("")}`;
}

function list(texts: readonly string[]): string {
  return texts.map((text) => `\n            - ${quoted(text)}`).join("");
}

/** Kubernetes replaces $(NAME), in arguments and in variables. */
function quoted(text: string): string {
  return JSON.stringify(text.replaceAll("$", "$$$$"));
}

/** As it is, where a block of YAML keeps every byte of it. */
function block(text: string): string {
  if (!/^\S/.test(text) || !/[^\n]\n$/.test(text) || /[^\x20-\x7e\n\u00a1-\ud7ff]/.test(text))
    return JSON.stringify(text);
  return `|\n${text.trimEnd().replaceAll(/^(?=.)/gm, "    ")}`;
}
