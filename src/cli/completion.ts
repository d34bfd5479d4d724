// `completion SHELL`: a few lines for the shell, which ask this program for the words that may come next.
import { GatewayError } from "../core/errors.ts";
import { type CommandLine, commandFlags } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import type { Commands } from "./table/command.ts";

const scripts: Readonly<Record<string, string>> = {
  // Readline begins a new word behind the colon of a model's id: the line is split here, and what is before the colon left out.
  bash: `_model_gateway() {
  local line="\${COMP_LINE:0:COMP_POINT}" words word
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local current="\${words[\${#words[@]}-1]}" before="" IFS=$'\\n'
  [[ $COMP_WORDBREAKS == *:* ]] && before="\${current%"\${current##*:}"}"
  COMPREPLY=()
  for word in $(model-gateway completion bash -- "\${words[@]:1}" 2>/dev/null); do
    [[ $word == "$current"* ]] && COMPREPLY+=("\${word#"$before"}")
  done
}
complete -o default -F _model_gateway model-gateway`,
  zsh: `#compdef model-gateway
_model_gateway() {
  local -a found
  found=("\${(@f)$(model-gateway completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if (( \${#found} )) && [[ -n $found[1] ]]; then compadd -a found; else _files; fi
}
compdef _model_gateway model-gateway`,
  fish: `function __model_gateway_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found (model-gateway completion fish -- $words[2..-1] 2>/dev/null)
  and string match -q -- "$words[-1]*" $found
  and printf '%s\\n' $found
  or __fish_complete_path $words[-1]
end
complete -c model-gateway -f -a '(__model_gateway_complete)'`,
};

export async function completionCommand({ operands, settings }: CommandLine, commands: Commands): Promise<number> {
  const [shell = "", ...words] = operands;
  const script = shellScript(shell);
  if (words.length === 0) {
    console.log(script);
    return 0;
  }
  const { words: found, models } = nextWords(words, commands);
  // At a prompt there is no place for an error.
  const ids = models ? await withGateway({ settings }, (client) => client.models()).catch(() => []) : [];
  for (const word of [...found, ...ids.map(({ id }) => id)]) console.log(word);
  return 0;
}

/** Errors: `invalid_request` for another shell. */
export function shellScript(shell: string): string {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script !== undefined) return script;
  throw new GatewayError("invalid_request", `there is no completion for ${shell}: choose bash, zsh or fish`);
}

const modelOperands = new Set(["MODEL", "[MODEL]", "ID"]);

/** What may stand in place of the last word, and whether the models may. Pure. */
export function nextWords(
  words: readonly string[],
  commands: Commands,
): { readonly words: readonly string[]; readonly models: boolean } {
  const last = words.at(-1) ?? "";
  const found = (all: readonly string[], models = false) => ({
    words: [...new Set(all)].filter((word) => word !== "" && word.startsWith(last)).sort(),
    models,
  });
  const names = Object.keys(commands).map((name) => name.split(" "));
  if (takesValue(words.at(-2))) return found(words.at(-2) === "--for" ? ["synced", "ready"] : []);
  const before = words.filter(
    (word, at) => at < words.length - 1 && !word.startsWith("-") && !takesValue(words[at - 1]),
  );
  const [first, ...rest] = before;
  if (first === "help") {
    const fitting = names.filter((name) => rest.every((word, at) => name[at] === word));
    return found(fitting.map((name) => name[rest.length] ?? ""));
  }
  if (before.length === 0) return found(names.map(([name = ""]) => name));
  const pair = before.slice(0, 2).join(" ");
  const name = Object.hasOwn(commands, pair) ? pair : (before[0] ?? "");
  const { flags = [], operands = "" } = (Object.hasOwn(commands, name) ? commands[name] : undefined) ?? {};
  if (last.startsWith("-")) return found([...flags, "help"].map((flag) => `--${flag}`));
  const operand = operands.split(" ")[before.length - name.split(" ").length] ?? "";
  const choices = /^\[?[a-z\d]+(?:\|[a-z\d]+)+\]?$/.test(operand) ? operand.replace(/[[\]]/g, "").split("|") : [];
  const second = before.length === 1 ? names.flatMap(([first, next = ""]) => (first === before[0] ? next : [])) : [];
  return found([...second, ...choices], modelOperands.has(operand));
}

function takesValue(word = ""): boolean {
  if (!/^--[^=]+$/.test(word)) return false;
  const flag = Object.entries(commandFlags).find(([name]) => word === `--${name}`);
  return flag === undefined || flag[1].type === "string";
}
