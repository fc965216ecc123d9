export const words = 'never'
