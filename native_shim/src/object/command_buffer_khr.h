/* cl_khr_command_buffer 0.9.8, cl_khr_command_buffer_mutable_dispatch 0.9.5 and
 * cl_khr_command_buffer_multi_device 0.9.2: what headers before them lack, or have otherwise. */
#ifndef CLD_COMMAND_BUFFER_KHR_H
#define CLD_COMMAND_BUFFER_KHR_H

/* Headers before 0.9.5 declare these with other parameters. */
#define clCommandBarrierWithWaitListKHR cld_before_barrier
#define clCommandCopyBufferKHR cld_before_copy_buffer
#define clCommandCopyBufferRectKHR cld_before_copy_buffer_rect
#define clCommandCopyBufferToImageKHR cld_before_copy_buffer_to_image
#define clCommandCopyImageKHR cld_before_copy_image
#define clCommandCopyImageToBufferKHR cld_before_copy_image_to_buffer
#define clCommandFillBufferKHR cld_before_fill_buffer
#define clCommandFillImageKHR cld_before_fill_image
#define clCommandNDRangeKernelKHR cld_before_ndrange_kernel
#define clCommandSVMMemcpyKHR cld_before_svm_memcpy
#define clCommandSVMMemFillKHR cld_before_svm_mem_fill
#define clUpdateMutableCommandsKHR cld_before_update_mutable_commands
#include <CL/cl_ext.h>
#undef clCommandBarrierWithWaitListKHR
#undef clCommandCopyBufferKHR
#undef clCommandCopyBufferRectKHR
#undef clCommandCopyBufferToImageKHR
#undef clCommandCopyImageKHR
#undef clCommandCopyImageToBufferKHR
#undef clCommandFillBufferKHR
#undef clCommandFillImageKHR
#undef clCommandNDRangeKernelKHR
#undef clCommandSVMMemcpyKHR
#undef clCommandSVMMemFillKHR
#undef clUpdateMutableCommandsKHR

typedef struct _cl_command_buffer_khr *cl_command_buffer_khr;
typedef struct _cl_mutable_command_khr *cl_mutable_command_khr;
typedef cl_uint cl_sync_point_khr;
typedef cl_uint cl_command_buffer_info_khr;
typedef cl_uint cl_command_buffer_state_khr;
typedef cl_properties cl_command_buffer_properties_khr;
typedef cl_bitfield cl_command_buffer_flags_khr;
typedef cl_properties cl_command_properties_khr;
typedef cl_uint cl_command_buffer_update_type_khr;
typedef cl_bitfield cl_mutable_dispatch_fields_khr;
typedef cl_bitfield cl_mutable_dispatch_asserts_khr;
typedef cl_uint cl_mutable_command_info_khr;
typedef cl_bitfield cl_platform_command_buffer_capabilities_khr;

/* As numbers: some macros have other values in older headers, or are not there. */
enum {
    CLD_INVALID_COMMAND_BUFFER = -1138,
    CLD_INVALID_SYNC_POINT_WAIT_LIST = -1139,
    CLD_INCOMPATIBLE_COMMAND_QUEUE = -1140,
    CLD_INVALID_MUTABLE_COMMAND = -1141,

    CLD_COMMAND_COMMAND_BUFFER = 0x12A8,

    CLD_COMMAND_BUFFER_FLAGS = 0x1293,
    CLD_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS = 0x12B7,
    CLD_COMMAND_BUFFER_SIMULTANEOUS_USE = 1 << 0,
    CLD_COMMAND_BUFFER_MUTABLE = 1 << 1,
    CLD_COMMAND_BUFFER_DEVICE_SIDE_SYNC = 1 << 2,

    CLD_COMMAND_BUFFER_QUEUES = 0x1294,
    CLD_COMMAND_BUFFER_NUM_QUEUES = 0x1295,
    CLD_COMMAND_BUFFER_REFERENCE_COUNT = 0x1296,
    CLD_COMMAND_BUFFER_STATE = 0x1297,
    CLD_COMMAND_BUFFER_PROPERTIES_ARRAY = 0x1298,
    CLD_COMMAND_BUFFER_CONTEXT = 0x1299,

    CLD_COMMAND_BUFFER_STATE_RECORDING = 0,
    CLD_COMMAND_BUFFER_STATE_EXECUTABLE = 1,
    CLD_COMMAND_BUFFER_STATE_FINALIZED = 2,

    CLD_MUTABLE_DISPATCH_UPDATABLE_FIELDS = 0x12B1,
    CLD_MUTABLE_DISPATCH_ASSERTS = 0x12B8,
    CLD_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS = 1 << 0,
    CLD_MUTABLE_DISPATCH_GLOBAL_OFFSET = 1 << 0,
    CLD_MUTABLE_DISPATCH_GLOBAL_SIZE = 1 << 1,
    CLD_MUTABLE_DISPATCH_LOCAL_SIZE = 1 << 2,
    CLD_MUTABLE_DISPATCH_ARGUMENTS = 1 << 3,
    CLD_MUTABLE_DISPATCH_EXEC_INFO = 1 << 4,
    CLD_MUTABLE_DISPATCH_ALL_FIELDS = (1 << 5) - 1,

    CLD_MUTABLE_COMMAND_COMMAND_QUEUE = 0x12A0,
    CLD_MUTABLE_COMMAND_COMMAND_BUFFER = 0x12A1,
    CLD_MUTABLE_COMMAND_PROPERTIES_ARRAY = 0x12A2,
    CLD_MUTABLE_DISPATCH_KERNEL = 0x12A3,
    CLD_MUTABLE_DISPATCH_DIMENSIONS = 0x12A4,
    CLD_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET = 0x12A5,
    CLD_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE = 0x12A6,
    CLD_MUTABLE_DISPATCH_LOCAL_WORK_SIZE = 0x12A7,
    CLD_MUTABLE_COMMAND_COMMAND_TYPE = 0x12AD,

    CLD_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG = 0,

    CLD_PLATFORM_COMMAND_BUFFER_CAPABILITIES = 0x0908,
    CLD_COMMAND_BUFFER_PLATFORM_UNIVERSAL_SYNC = 1 << 0,
    CLD_COMMAND_BUFFER_PLATFORM_REMAP_QUEUES = 1 << 1,
    CLD_COMMAND_BUFFER_PLATFORM_AUTOMATIC_REMAP = 1 << 2,
    CLD_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES = 0x12AB,
    CLD_DEVICE_COMMAND_BUFFER_SYNC_DEVICES = 0x12AC,
};

struct cld_mutable_dispatch_arg { /* cl_mutable_dispatch_arg_khr */
    cl_uint arg_index;
    size_t arg_size;
    const void *arg_value;
};

struct cld_mutable_dispatch_exec_info { /* cl_mutable_dispatch_exec_info_khr */
    cl_uint param_name;
    size_t param_value_size;
    const void *param_value;
};

struct cld_mutable_dispatch_config { /* cl_mutable_dispatch_config_khr */
    cl_mutable_command_khr command;
    cl_uint num_args;
    cl_uint num_svm_args;
    cl_uint num_exec_infos;
    cl_uint work_dim;
    const struct cld_mutable_dispatch_arg *arg_list;
    const struct cld_mutable_dispatch_arg *arg_svm_list;
    const struct cld_mutable_dispatch_exec_info *exec_info_list;
    const size_t *global_work_offset;
    const size_t *global_work_size;
    const size_t *local_work_size;
};

#endif
