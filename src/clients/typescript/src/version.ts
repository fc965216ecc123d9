/** The version of this package, which is that of the berth that it was made with. `scripts/clients` writes it. */
export const VERSION: string = '0.0.0'
