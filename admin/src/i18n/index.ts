/** Languages, one catalogue each. tsc finds unknown keys; a test finds missing translations. */
import i18n from "i18next";
import { initReactI18next } from "react-i18next";
import { translateFaults } from "@/api/client";
import { clockTime } from "@/ui/format";
import type en from "./en.json";
import { FAULTS, inWords } from "./faults";
import type { Language } from "./languages";

declare module "i18next" {
  interface CustomTypeOptions {
    resources: { translation: typeof en };
  }
}

const STORED = "tollgate.language";
const catalogues = { en: () => import("./en.json"), zh: () => import("./zh.json") };

function preferred(): Language {
  const chosen = localStorage.getItem(STORED) ?? navigator.language;
  return chosen.startsWith("zh") ? "zh" : "en";
}

async function load(language: Language) {
  const [catalogue, faults] = await Promise.all([catalogues[language](), FAULTS[language]?.()]);
  i18n.addResourceBundle(language, "translation", catalogue.default, true, true);
  translateFaults(
    (code, params, said) =>
      away(params) ?? (faults ? inWords(faults.default, code, params, said) : said),
  );
}

/** The gateway's time zone, for times in faults; until it is known, the browser's. */
let timeZone: string | undefined;
export function faultsIn(zone: string | undefined) {
  timeZone = zone;
}

/** Every operation has the same message when the database cannot be reached. */
function away({ reason, since }: Record<string, unknown>): string | undefined {
  if (reason !== "database_unreachable" || typeof since !== "string") return undefined;
  const format = { locale: i18n.language, timeZone, currency: "" };
  return i18n.t("outage.fault", { since: clockTime(new Date(since), new Date(), format) });
}

export async function startLanguage() {
  const language = preferred();
  await i18n.use(initReactI18next).init({
    lng: language,
    fallbackLng: false,
    resources: {},
    interpolation: { escapeValue: false },
  });
  await speak(language);
}

export async function speak(language: Language) {
  await load(language);
  localStorage.setItem(STORED, language);
  document.documentElement.lang = language;
  await i18n.changeLanguage(language);
}
