<?php $image = imagecreatetruecolor(10, 10); imagepng($image);
