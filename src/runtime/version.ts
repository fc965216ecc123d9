import { version } from '../../package.json' with { type: 'json' }

/** The version of berth. */
export const VERSION: string = version
