// The environment of an engine: what it needs to find its hardware and libraries, and no secret.

/** Names and prefixes that pass. An allow list, because a deny list would miss the next secret. */
const passed =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_.*|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|LD_LIBRARY_PATH|DYLD_.*|CUDA_.*|NVIDIA_.*|GGML_.*|HIP_.*|HSA_.*|ROCR_.*|ROCM_.*|VK_.*|MESA_.*|XDG_RUNTIME_DIR|XDG_DATA_DIRS|ONEAPI_.*|SYCL_.*|ZE_.*|OMP_.*|OPENBLAS_.*|GOMP_.*|KMP_.*|MTL_.*|METAL_.*)$/i;
/** Within those prefixes too: NVIDIA_API_KEY is a key to a paid service. */
const secret = /KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH/i;

export function isSecretName(name: string): boolean {
  return secret.test(name);
}

export function engineEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  extra: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && passed.test(entry[0]) && !isSecretName(entry[0]),
  );
  return { ...Object.fromEntries(kept), ...extra };
}
