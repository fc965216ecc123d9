<?php echo 'served from web for ', $_SERVER['REQUEST_URI'];
