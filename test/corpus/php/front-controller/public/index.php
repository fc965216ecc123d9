<?php
echo 'route ', strtok($_SERVER['REQUEST_URI'], '?'), ' by ', $_SERVER['SCRIPT_NAME'];
