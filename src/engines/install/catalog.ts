// What each engine is made of: executables, Debian packages, release repository, the commands that install it by hand. Pure data.

/** Tools of llama.cpp that ask or measure and serve nothing. */
export type EngineTool = "llama-fit-params" | "llama-bench" | "llama-quantize";
export type EngineBinary = "llama-server" | "ggml-rpc-server" | "whisper-server" | EngineTool;
export type EngineName = "llama" | "whisper";

interface EngineFacts {
  /** Executable names by which each one was ever shipped, the present name first. */
  readonly binaries: Readonly<Partial<Record<EngineBinary, readonly string[]>>>;
  /** Those of `binaries` without which an installation is complete: not every archive has them. */
  readonly optional: readonly EngineTool[];
  /** The executable that proves an installation, and the arguments with which it prints something and ends with 0. */
  readonly main: EngineBinary;
  readonly proof: readonly string[];
  /** The version of the first one is the engine's version. */
  readonly debianPackages: readonly [string, ...string[]];
  readonly releases: string;
  /** The command that installs it without us. */
  readonly byHand: Readonly<Record<"darwin" | "win32" | "other", string>>;
}

export const engineFacts: Readonly<Record<EngineName, EngineFacts>> = {
  llama: {
    binaries: {
      "llama-server": ["llama-server"],
      "ggml-rpc-server": ["ggml-rpc-server", "rpc-server"],
      "llama-fit-params": ["llama-fit-params"],
      "llama-bench": ["llama-bench"],
      "llama-quantize": ["llama-quantize"],
    },
    optional: ["llama-fit-params", "llama-bench", "llama-quantize"],
    main: "llama-server",
    proof: ["--version"],
    // Without the RPC backend ggml-rpc-server ends with "Failed to find RPC backend".
    debianPackages: ["llama.cpp-tools", "llama.cpp-tools-extra", "libggml0-backend-rpc"],
    releases: "https://api.github.com/repos/ggml-org/llama.cpp/releases?per_page=10",
    byHand: {
      darwin: "brew install llama.cpp",
      win32: "winget install llama.cpp",
      other: "nix profile install nixpkgs#llama-cpp",
    },
  },
  whisper: {
    binaries: { "whisper-server": ["whisper-server"] },
    optional: [],
    main: "whisper-server",
    proof: ["--help"],
    debianPackages: ["whisper.cpp-tools"],
    releases: "https://api.github.com/repos/ggml-org/whisper.cpp/releases?per_page=10",
    byHand: {
      darwin: "brew install whisper-cpp",
      win32: "scoop install whisper-cpp",
      other: "nix profile install nixpkgs#whisper-cpp",
    },
  },
};
