// .github/plan-comment.mjs: reads what `model-gateway plan --json` prints, and writes it in Markdown, as a comment on a pull request.
import { text } from "node:stream/consumers";

const { steps, remaining, problems, totals, complete } = JSON.parse(await text(process.stdin));

/** Names and values come from the pull request: no markup, no mentions. */
const plain = (value) => String(value ?? "none").replace(/[|<&@`[\]\r\n]/g, (char) => `&#${char.charCodeAt(0)};`);

const size = (bytes) => (bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`);

const sum = ({ count, bytes }, what) => count > 0 && `${count} ${what}${bytes > 0 ? ` (${size(bytes)})` : ""}`;

const counted = [
  `${totals.steps} ${totals.steps === 1 ? "step" : "steps"}`,
  sum(totals.pull, "to pull"),
  sum(totals.import, "to import"),
  sum(totals.delete, "to delete"),
  totals.reload > 0 && `${totals.reload} to reload (${totals.inFlight} responses in flight)`,
  totals.held > 0 && `${totals.held} held`,
  totals.problems > 0 && `${totals.problems} that cannot be done`,
];

const rows = steps.map(({ message, bytes, reason, changes, ends }) => {
  // A model whose name the step has is not named again.
  const fields = changes.map(({ subject, field, from, to }) =>
    [...(message.includes(subject) ? [] : [subject]), `${field}:`, from, "→", to].map(plain).join(" "),
  );
  const reloads = ends.map(({ model, inFlight }) => `ends the instance of ${plain(model)} (${inFlight} in flight)`);
  const what = bytes === null ? plain(message) : `${plain(message)}, ${size(bytes)}`;
  return `| ${what} | ${plain(reason)} | ${[...fields, ...reloads].join("<br>")} |`;
});

const lines = [
  `**gateway.yaml: ${counted.filter(Boolean).join(", ")}**`,
  ...(rows.length > 0 ? ["", "| step | why | changes |", "| --- | --- | --- |", ...rows] : []),
  ...(complete ? [] : ["", "More steps follow that are not known yet."]),
  "",
  ...problems.map(
    ({ subject, message, hint }) => `- **cannot be done**: ${plain(`${subject}: ${message}. ${hint ?? ""}`)}`,
  ),
  ...remaining.map(({ message, because }) => `- **held**: ${plain(`${message}: ${because}`)}`),
];

process.stdout.write(`${lines.join("\n").trimEnd()}\n`);
