/** Where the settings lie in a sandbox's directory of tools. */
export const NPM_SETTINGS_FILE = 'etc/npmrc'

/** The variables that the settings are filled from. Nobody reads these settings without them. */
export const NPM_VARIABLES = {
  /** A registry's address, with a slash at the end. */
  url: 'BERTH_PACKAGES_URL',
  /** Its host and port. */
  host: 'BERTH_PACKAGES_HOST',
  /** The credential for it. */
  token: 'BERTH_PACKAGES_TOKEN',
} as const

/**
 * Settings for npm that name a registry with its credential. Npm takes a credential from a file alone: as a variable its
 * name has characters that a shell does not pass on. As npm's global settings they are weaker than a project's and a
 * user's own.
 */
export const NPM_SETTINGS = `registry=\${${NPM_VARIABLES.url}}
//\${${NPM_VARIABLES.host}}/:_authToken=\${${NPM_VARIABLES.token}}
audit=false
fund=false
update-notifier=false
`
