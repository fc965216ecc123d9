package berth

// Version is the version of this module, which is that of the berth that it was made with. scripts/clients writes it.
const Version = "0.0.0"
