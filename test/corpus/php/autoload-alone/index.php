<?php
require __DIR__ . '/vendor/autoload.php';
echo Shop\Price::of('tea');
