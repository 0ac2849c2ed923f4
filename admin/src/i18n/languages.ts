/** The languages with a catalogue, each by its own name. */
export const LANGUAGES = { en: "English", zh: "中文" } as const;
export type Language = keyof typeof LANGUAGES;
