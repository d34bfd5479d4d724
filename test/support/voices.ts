// A voice manifest of the official form.
import { americanEnglish } from "./piper-voice.ts";

function file(size: number, md5: string): object {
  return { size_bytes: size, md5_digest: md5 };
}

/** An entry for an id of the form `xx_YY-name-quality`. */
export function manifestEntry(key: string, facts: object = {}): Record<string, unknown> {
  const [code = "", name = "", quality = ""] = key.split("-");
  const [family = "", region = ""] = code.split("_");
  const base = `${family}/${code}/${name}/${quality}`;
  return {
    key,
    name,
    language: { code, family, region, name_native: family, name_english: family, country_english: region },
    quality,
    num_speakers: 1,
    speaker_id_map: {},
    files: {
      [`${base}/${key}.onnx`]: file(20_600_000, "0".repeat(32)),
      [`${base}/${key}.onnx.json`]: file(4_819, "1".repeat(32)),
      [`${base}/MODEL_CARD`]: file(285, "2".repeat(32)),
    },
    aliases: [],
    ...facts,
  };
}

export const voiceManifest: Readonly<Record<string, unknown>> = {
  "en_US-lessac-medium": manifestEntry("en_US-lessac-medium", {
    language: americanEnglish,
    files: {
      "en/en_US/lessac/medium/en_US-lessac-medium.onnx": file(63_201_294, "2fc642b535197b6305c7c8f92dc8b24f"),
      "en/en_US/lessac/medium/en_US-lessac-medium.onnx.json": file(7_010, "46e565a656f76b42b588d822025ed439"),
      "en/en_US/lessac/medium/MODEL_CARD": file(351, "42f2dd4a98149e12fc70b301d9579dfd"),
    },
    aliases: ["en-us-lessac-medium"],
  }),
  "en_GB-vctk-medium": manifestEntry("en_GB-vctk-medium", {
    language: {
      code: "en_GB",
      family: "en",
      region: "GB",
      name_native: "English",
      name_english: "English",
      country_english: "Great Britain",
    },
    num_speakers: 109,
    speaker_id_map: { p239: 0, p236: 1, p264: 2 },
  }),
  "de_DE-thorsten-medium": manifestEntry("de_DE-thorsten-medium", {
    language: {
      code: "de_DE",
      family: "de",
      region: "DE",
      name_native: "Deutsch",
      name_english: "German",
      country_english: "Germany",
    },
    files: {
      "de/de_DE/thorsten/medium/de_DE-thorsten-medium.onnx": file(63_201_294, "a129b00fb3078df43c96bab6c94535c0"),
      "de/de_DE/thorsten/medium/de_DE-thorsten-medium.onnx.json": file(4_819, "843a7bd7272724f750534dd5a26d1aad"),
      "de/de_DE/thorsten/medium/MODEL_CARD": file(285, "e84cf8b09957fccceb068a3c1664d0f3"),
    },
  }),
  "pt_PT-tugão-medium": manifestEntry("pt_PT-tugão-medium"),
};
