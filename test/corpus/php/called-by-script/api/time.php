<?php echo 'it is now ' . date('H:i');
