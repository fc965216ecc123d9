/** The path of the executable of berth. Loading the module throws if the package for this system is missing. */
export const path: string
