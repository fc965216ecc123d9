plugins {
    application
}

application {
    mainClass.set("org.example.Main")
}
