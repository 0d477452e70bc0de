-- What wrk sends for bench/http.py: the same small graph again and again.
wrk.method = "POST"
wrk.headers["Content-Type"] = "text/plain"
wrk.body = [[
%a : f16[128,256] = input
%t : f16[256,128] = aten.t.default(%a)
%b : f16[256,128] = input
%y : f16[256,128] = aten.add.Tensor(%t, %b)
return %y
]]
