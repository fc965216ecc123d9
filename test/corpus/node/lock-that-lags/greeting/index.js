module.exports = 'greeting'
