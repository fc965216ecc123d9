/** A stylesheet, imported as its text. */
declare module '*.css' {
  const text: string
  export default text
}

/** A drawing, imported as its text. */
declare module '*.svg' {
  const text: string
  export default text
}
