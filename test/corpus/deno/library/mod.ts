export const words = ['one', 'two']
