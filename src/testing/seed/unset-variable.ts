/** What to do about a variable that a file refers to and that is not set, as a sentence. */
export const UNSET_REMEDY = 'Set it, or write the value down.'
