/** Escape sequences of terminals (ECMA-48): colours and the like. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they begin with one
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|.)/g

/** What a carriage return goes back over: a program writes its progress anew on the same line. */
const OVERWRITTEN = /[^\n]*\r(?!\n|$)/g

/** Returns what a program printed as it stands on a terminal, without colours. */
export const plainText = (text: string): string => text.replace(ESCAPES, '').replace(OVERWRITTEN, '')
