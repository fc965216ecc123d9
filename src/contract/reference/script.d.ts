/** The script of the reference's pages, imported as its text. */
declare module '*/reference.js' {
  const text: string
  export default text
}
