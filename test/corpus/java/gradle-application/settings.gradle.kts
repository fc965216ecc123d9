rootProject.name = "all"

include("common", ":server")
