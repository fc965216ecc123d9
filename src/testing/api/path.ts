/** Whether a request is for the control API: its path begins with `/_berth`, with nothing of the name behind. */
export const isControlRequest = ({ url }: Request): boolean => CONTROL.test(url)

const CONTROL = /^[a-z]+:\/\/[^/]*\/_berth(?:[/?]|$)/
