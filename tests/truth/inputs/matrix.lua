-- Products of small matrices of doubles in an interpreter.
local n = 40
local function matrix(seed)
    local m = {}
    for i = 1, n * n do m[i] = math.sin(i * seed) end
    return m
end
local a, b = matrix(0.3), matrix(0.7)
local sum = 0
for _ = 1, tonumber(arg[1]) do
    for i = 0, n - 1 do
        for j = 1, n do
            local s = 0.0
            for k = 1, n do s = s + a[i * n + k] * b[(k - 1) * n + j] end
            sum = sum + s
        end
    end
end
print(sum)
