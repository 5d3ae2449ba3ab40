// A scene of our own: reflecting spheres and an isosurface over a plane.
#version 3.7;
global_settings { assumed_gamma 1.0 }
camera { location <0, 3, -9> look_at <0, 1, 0> }
light_source { <6, 9, -7> rgb 1 area_light <1, 0, 0>, <0, 0, 1>, 3, 3 adaptive 1 }
light_source { <-5, 6, -4> rgb <0.4, 0.5, 0.7> }
plane { y, 0 pigment { checker rgb 0.9 rgb <0.2, 0.3, 0.5> } finish { reflection 0.2 } }
#for (I, 0, 11)
    sphere {
        <4 * cos(I * pi / 6), 1, 4 * sin(I * pi / 6)>, 0.8
        pigment { marble turbulence 0.8 color_map { [0 rgb 1] [1 rgb <0.8, 0.3, 0.1>] } }
        finish { phong 0.8 reflection 0.35 }
    }
#end
isosurface {
    function { sqrt(x*x + y*y + z*z) - 1 - 0.15 * sin(7*x) * sin(7*y) * sin(7*z) }
    contained_by { sphere { 0, 1.4 } } max_gradient 3
    translate y * 1.5
    pigment { rgb <0.5, 0.8, 0.4> } finish { specular 0.6 }
}
