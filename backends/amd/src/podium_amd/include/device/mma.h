#pragma once

#error "podium-amd has no nvcuda::wmma: tensor cores are not the matrix cores of AMD; write the product out, or use rocWMMA by include_dirs"
