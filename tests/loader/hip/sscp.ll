; Kernels as AdaptiveCpp's compiler hands them to a translator: pointers of unified shared memory in structures
; by value, local memory as a variable of zeros, SPIR-V's instructions as functions. test_sscp.py has the models.
target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-n8:16:32:64-G1"
target triple = "spirv64-unknown-unknown"

%pointer = type { ptr addrspace(1) }
%capture = type { ptr addrspace(4), i32, [3 x float], %pointer }

@local_memory = internal addrspace(3) global [64 x i32] zeroinitializer, align 16
@counter = internal addrspace(1) global i32 0, align 4
@format = private unnamed_addr addrspace(1) constant [13 x i8] c"item %d, %s\0A\00", align 1
@word = private unnamed_addr addrspace(1) constant [5 x i8] c"sscp\00", align 1

declare spir_func i64 @_Z32__spirv_BuiltInLocalInvocationIdi(i32)
declare spir_func i64 @_Z26__spirv_BuiltInWorkgroupIdi(i32)
declare spir_func i64 @_Z28__spirv_BuiltInWorkgroupSizei(i32)
declare spir_func i64 @_Z28__spirv_BuiltInNumWorkgroupsi(i32)
declare spir_func void @_Z22__spirv_ControlBarrierjjj(i32, i32, i32)
declare spir_func i32 @_Z18__spirv_AtomicIAddPU3AS4ijji(ptr addrspace(4), i32, i32, i32)
declare spir_func float @_Z15__spirv_ocl_expf(float)
declare spir_func float @_Z17__spirv_ocl_rsqrtf(float)
declare spir_func i32 @_Z18__spirv_ocl_printfPU3AS1cz(ptr addrspace(1), ...)

define spir_func i64 @global_id() {
  %group = call spir_func i64 @_Z26__spirv_BuiltInWorkgroupIdi(i32 0)
  %size = call spir_func i64 @_Z28__spirv_BuiltInWorkgroupSizei(i32 0)
  %local = call spir_func i64 @_Z32__spirv_BuiltInLocalInvocationIdi(i32 0)
  %first = mul i64 %group, %size
  %id = add i64 %first, %local
  ret i64 %id
}

; Items count the work-items of their group per key, in local memory that nothing has cleared.
define spir_kernel void @count(ptr byval(%pointer) %keys, ptr byval(%pointer) %out) {
  %id = call spir_func i64 @global_id()
  %keys_begin = load ptr addrspace(1), ptr %keys
  %place = getelementptr inbounds i32, ptr addrspace(1) %keys_begin, i64 %id
  %key = load i32, ptr addrspace(1) %place
  %slot = getelementptr inbounds [64 x i32], ptr addrspace(3) @local_memory, i64 0, i32 %key
  %generic = addrspacecast ptr addrspace(3) %slot to ptr addrspace(4)
  %old = call spir_func i32 @_Z18__spirv_AtomicIAddPU3AS4ijji(ptr addrspace(4) %generic, i32 2, i32 0, i32 1)
  call spir_func void @_Z22__spirv_ControlBarrierjjj(i32 2, i32 2, i32 264)
  %count = load i32, ptr addrspace(3) %slot
  %out_begin = load ptr addrspace(1), ptr %out
  %out_place = getelementptr inbounds i32, ptr addrspace(1) %out_begin, i64 %id
  store i32 %count, ptr addrspace(1) %out_place
  %total = addrspacecast ptr addrspace(1) @counter to ptr addrspace(4)
  %before = call spir_func i32 @_Z18__spirv_AtomicIAddPU3AS4ijji(ptr addrspace(4) %total, i32 1, i32 0, i32 1)
  ret void
}

define spir_kernel void @read_counter(ptr byval(%pointer) %out) {
  %begin = load ptr addrspace(1), ptr %out
  %value = load i32, ptr addrspace(1) @counter
  store i32 %value, ptr addrspace(1) %begin
  ret void
}

; A lambda's captures: a generic pointer, and one in a structure inside.
define spir_kernel void @captured(ptr byval(%capture) %captures) {
  %id = call spir_func i64 @global_id()
  %in = load ptr addrspace(4), ptr %captures
  %n_place = getelementptr inbounds %capture, ptr %captures, i32 0, i32 1
  %n = load i32, ptr %n_place
  %wide = zext i32 %n to i64
  %inside = icmp ult i64 %id, %wide
  br i1 %inside, label %then, label %done

then:
  %place = getelementptr inbounds float, ptr addrspace(4) %in, i64 %id
  %x = load float, ptr addrspace(4) %place
  %third = urem i64 %id, 3
  %factor_place = getelementptr inbounds %capture, ptr %captures, i32 0, i32 2, i64 %third
  %factor = load float, ptr %factor_place
  %exp = call spir_func float @_Z15__spirv_ocl_expf(float %x)
  %root = call spir_func float @_Z17__spirv_ocl_rsqrtf(float %factor)
  %r = fmul float %exp, %root
  %out_place = getelementptr inbounds %capture, ptr %captures, i32 0, i32 3, i32 0
  %out = load ptr addrspace(1), ptr %out_place
  %to = getelementptr inbounds float, ptr addrspace(1) %out, i64 %id
  store float %r, ptr addrspace(1) %to
  br label %done

done:
  ret void
}

; A list in unified shared memory: each entry is a value and the address of the next one.
define spir_kernel void @walk(ptr byval(%pointer) %heads, ptr byval(%pointer) %out) {
entry:
  %id = call spir_func i64 @global_id()
  %heads_begin = load ptr addrspace(1), ptr %heads
  %place = getelementptr inbounds ptr addrspace(4), ptr addrspace(1) %heads_begin, i64 %id
  %first = load ptr addrspace(4), ptr addrspace(1) %place
  br label %head

head:
  %node = phi ptr addrspace(4) [ %first, %entry ], [ %next, %body ]
  %sum = phi i64 [ 0, %entry ], [ %more, %body ]
  %ends = icmp eq ptr addrspace(4) %node, null
  br i1 %ends, label %done, label %body

body:
  %value = load i64, ptr addrspace(4) %node
  %more = add i64 %sum, %value
  %next_place = getelementptr inbounds i8, ptr addrspace(4) %node, i64 8
  %next = load ptr addrspace(4), ptr addrspace(4) %next_place
  br label %head

done:
  %out_begin = load ptr addrspace(1), ptr %out
  %to = getelementptr inbounds i64, ptr addrspace(1) %out_begin, i64 %id
  store i64 %sum, ptr addrspace(1) %to
  ret void
}

define spir_kernel void @say() {
  %id = call spir_func i64 @global_id()
  %is = icmp eq i64 %id, 5
  br i1 %is, label %then, label %done

then:
  %narrow = trunc i64 %id to i32
  %n = call spir_func i32 (ptr addrspace(1), ...) @_Z18__spirv_ocl_printfPU3AS1cz(ptr addrspace(1) @format, i32 %narrow, ptr addrspace(1) @word)
  br label %done

done:
  ret void
}
